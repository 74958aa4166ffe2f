// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Addresses} from "./shared/Addresses.sol";
import {OrderExchange} from "./shared/OrderExchange.sol";
import {PositionModule} from "./shared/PositionModule.sol";
import {PositionManager} from "./PositionManager.sol";

/// For markets of protocol v2. A condition's id is the id of its YES.
contract ExchangeV3 is OrderExchange {
    using SafeERC20 for IERC20;

    PositionManager private constant MANAGER = PositionManager(Addresses.POSITION_MANAGER);

    function _version() internal pure override returns (string memory) {
        return "3";
    }

    function _positions(bytes32 conditionId) internal pure override returns (uint256, uint256) {
        uint256 yes = uint256(conditionId) & ~uint256(0xff);
        return (yes, yes + 1);
    }

    function _transferShares(address from, address to, uint256 id, uint256 amount) internal override {
        MANAGER.unsafeTransferFrom(from, to, id, amount);
    }

    function _split(bytes32 conditionId, uint256 amount) internal override {
        PositionModule module = PositionModule(MANAGER.moduleOf(uint256(conditionId)));
        DOLLAR.safeTransfer(address(module), amount);
        module.open(bytes31(conditionId), address(this), amount);
    }

    function _merge(bytes32 conditionId, uint256 amount) internal override {
        PositionModule module = PositionModule(MANAGER.moduleOf(uint256(conditionId)));
        (uint256 yes, uint256 no) = _positions(conditionId);
        MANAGER.unsafeTransferFrom(address(this), address(module), yes, amount);
        MANAGER.unsafeTransferFrom(address(this), address(module), no, amount);
        module.close(bytes31(conditionId), address(this), amount);
    }
}
