// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";

struct RelayCall {
    address target;
    bool allowFailure;
    uint256 value;
    bytes callData;
}

struct RelayResult {
    bool success;
    bytes returnData;
}

interface IRelayRouter {
    function multicall(RelayCall[] calldata calls, address refundTo, address nftRecipient)
        external
        payable
        returns (RelayResult[] memory);

    function multicall(RelayCall[] calldata calls, address refundTo, address nftRecipient, bytes calldata metadata)
        external
        payable
        returns (RelayResult[] memory);
}

/// Takes tokens by the allowance of the caller into one router, which then runs calls. Written from the published
/// interface of Relay's contract, in the forms of 2.1 and 3. The code is placed without its constructor, so it knows its
/// router by its own address.
contract RelayApprovalProxy {
    using SafeERC20 for IERC20;

    address private constant PROXY_2_1 = 0x58cC3e0aA6CD7bf795832A225179ec2d848cE3e7;
    address private constant ROUTER_2_1 = 0x3eC130B627944cad9b2750300ECB0A695DA522B6;
    address private constant PROXY_3 = 0xCcC88a9d1B4ED6b0EABA998850414b24f1c315bE;
    address private constant ROUTER_3 = 0xb92fe925DC43a0ECdE6c8b1a2709c170Ec4fFf4f;
    address private constant ROUTER_3_2 = 0x0729E2a4716d9f7dD17858d5d504426D228697f7;

    error ArrayLengthsMismatch();
    error RefundToCannotBeZeroAddress();

    event FundsMovement(address from, address to, address currency, uint256 amount, bytes metadata);

    function transferAndMulticall(
        address[] calldata tokens,
        uint256[] calldata amounts,
        RelayCall[] calldata calls,
        address refundTo,
        address nftRecipient,
        bytes calldata metadata
    ) external payable returns (RelayResult[] memory) {
        IRelayRouter router = _pull(tokens, amounts, refundTo);
        for (uint256 i = 0; i < tokens.length; i++) {
            emit FundsMovement(msg.sender, address(router), tokens[i], amounts[i], metadata);
        }
        return router.multicall{value: msg.value}(calls, refundTo, nftRecipient, metadata);
    }

    function transferAndMulticall(
        address[] calldata tokens,
        uint256[] calldata amounts,
        RelayCall[] calldata calls,
        address refundTo,
        address nftRecipient
    ) external payable returns (RelayResult[] memory) {
        return _pull(tokens, amounts, refundTo).multicall{value: msg.value}(calls, refundTo, nftRecipient);
    }

    function _pull(address[] calldata tokens, uint256[] calldata amounts, address refundTo)
        private
        returns (IRelayRouter router)
    {
        address own = address(this);
        router = IRelayRouter(own == PROXY_2_1 ? ROUTER_2_1 : own == PROXY_3 ? ROUTER_3 : ROUTER_3_2);
        require(tokens.length == amounts.length, ArrayLengthsMismatch());
        require(refundTo != address(0), RefundToCannotBeZeroAddress());
        for (uint256 i = 0; i < tokens.length; i++) {
            IERC20(tokens[i]).safeTransferFrom(msg.sender, address(router), amounts[i]);
        }
    }
}
