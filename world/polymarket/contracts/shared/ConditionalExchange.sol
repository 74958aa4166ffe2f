// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Addresses} from "./Addresses.sol";
import {BinarySets} from "./BinarySets.sol";
import {CollateralBridge} from "./CollateralBridge.sol";
import {OrderExchange} from "./OrderExchange.sol";
import {ConditionalTokens} from "../ConditionalTokens.sol";

/// An exchange of conditional tokens, which an adapter splits and merges.
abstract contract ConditionalExchange is OrderExchange {
    ConditionalTokens private constant TOKENS = ConditionalTokens(Addresses.CONDITIONAL_TOKENS);

    function _collateral() internal pure virtual returns (address);

    function _adapter() internal pure virtual returns (CollateralBridge);

    function _version() internal pure override returns (string memory) {
        return "2";
    }

    function _positions(bytes32 conditionId) internal view override returns (uint256, uint256) {
        (uint256[] memory ids,) = BinarySets.positions(_collateral(), conditionId, 0);
        return (ids[0], ids[1]);
    }

    function _transferShares(address from, address to, uint256 id, uint256 amount) internal override {
        TOKENS.safeTransferFrom(from, to, id, amount, "");
    }

    function _split(bytes32 conditionId, uint256 amount) internal override {
        DOLLAR.approve(address(_adapter()), amount);
        _adapter().splitPosition(address(DOLLAR), 0, conditionId, BinarySets.both(), amount);
    }

    function _merge(bytes32 conditionId, uint256 amount) internal override {
        TOKENS.setApprovalForAll(address(_adapter()), true);
        _adapter().mergePositions(address(DOLLAR), 0, conditionId, BinarySets.both(), amount);
    }
}
